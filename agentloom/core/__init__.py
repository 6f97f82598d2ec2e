"""The runtime: plan, runner, state, results, events, and on top the engine."""
