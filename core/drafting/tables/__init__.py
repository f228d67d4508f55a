"""Tables in memory that drafters look tokens up in. No mlx."""
