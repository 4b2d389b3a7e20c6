"""What a project on disk says about itself: its dependencies and the packages installed for it."""
