"""Benches of decoding: speed, parity, first tokens, busy neighbours."""
