"""Editor features as plain values in offsets; knows no editor protocol."""
