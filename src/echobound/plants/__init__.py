"""Simulated plants and excitation signals; the pH neutralisation process of the paper."""
