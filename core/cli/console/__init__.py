"""What every command shares: arguments, configuration, output and progress."""
