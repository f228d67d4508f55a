"""Documents that a person keeps for more than one chat: what is known of them, without files and Qt."""
