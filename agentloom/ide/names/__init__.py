"""What the names in a file mean, where else the same thing is named, and which names of other files mean it too."""
