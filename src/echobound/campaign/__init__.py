"""Many draws, surely: engines, the ledger, progress events, the run folder."""
