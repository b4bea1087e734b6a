"""The theory: bounds, the law of the violation probability, certificates, verification. Numbers in, statements out."""
