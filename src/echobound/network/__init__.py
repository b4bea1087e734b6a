"""What is drawn (ReservoirLaw), one draw (Reservoir), its readout (least squares) and the model (EchoStateNetwork)."""
