"""Exportable: what every model has beside its equations, the certificate of the run it comes from, and `export`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from echobound.onward import onward
from echobound.scenario import Certificate


class Exportable:
    """A model that can be taken away, with the certificate of its run.

    The certificate is beside the model, not part of it: neither of its digest nor of its file, and a copy that was
    changed (`dataclasses.replace`) has none.
    """

    certificate: Certificate | None = None
    """That of the run which the model comes from; None if it comes from a file of its own, or was changed."""

    def export(self, path: str | Path, to: str, **options: Any) -> Any:
        """Export the model, so that it runs without echobound; an `Export`, which can be checked.

        Parameters
        ----------
        path
            The file to write, or the folder for targets that write several.
        to
            The target: ``c``, ``fmu``, ``onnx``, ``casadi``, ``control``, ``matlab`` or ``st``.
        **options
            Those of `export_model`: ``certificate``, ``name``, ``precision``, ``fmi``.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> from echobound import identify, ph_experiment
        >>> result = identify(*ph_experiment(samples=(400, 300)), law="paper", order=10, networks=20)
        >>> with TemporaryDirectory() as folder:
        ...     exported = result.network.export(f"{folder}/plant.st", "st")
        ...     exported.check(samples=100).largest_difference < 1e-12
        True
        >>> exported.card.certificate == result.certificate.to_dict()["digest"], exported.card.statement[:16]
        (True, 'About this model')
        """
        return onward("Exportable.export", self, path, to, **options)


def of_run(model: Any, certificate: Certificate) -> Any:
    """The model itself, which from now on knows the certificate of its run; of another kind, it stays as it is."""
    if isinstance(model, Exportable):
        object.__setattr__(model, "certificate", certificate)  # models are frozen
    return model
