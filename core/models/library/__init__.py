"""The models on this machine and on the hub: places, needs, downloads."""
