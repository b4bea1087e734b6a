"""For commands in a process of their own: the law broad as it was before it clipped, since only then networks diverge.

Python imports a module of this name when it starts, if its folder is on PYTHONPATH: see `campaigns.UNCLIPPED`.
"""

import dataclasses

from echobound.network import law

clipping = law.broad
law.broad = lambda *arguments: dataclasses.replace(clipping(*arguments), clip=False)
