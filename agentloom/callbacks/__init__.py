"""The callback server: decisions about runs that wait at gates, taken over HTTP, and gates whose time is over."""
