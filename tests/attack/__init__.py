"""Campaigns that attack Draftlight: `make attack` runs them whole, `make test` their quick parts."""
