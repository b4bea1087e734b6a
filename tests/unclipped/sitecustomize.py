"""For commands in a process of their own: the law broad as it was before it clipped, since only then networks diverge.

Python imports a module of this name when it starts, if its folder is on PYTHONPATH: see `campaigns.UNCLIPPED`.
"""

import dataclasses

from echobound.network import laws

clipping = laws.broad
laws.broad = lambda *arguments, **named: dataclasses.replace(clipping(*arguments, **named), clip=False)
