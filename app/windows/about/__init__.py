"""What Draftlight is made of: the licences of everything inside, and the text that shows them."""
