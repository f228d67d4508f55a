"""Several machines that run one model: which there are, and what fits them."""
