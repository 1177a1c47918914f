"""Names of our own modules, for what is found by name: programs that we start, files that we copy.

They are made from the name of this package, which is another one where Medusa is installed: there,
all of it lies below `medusa_streams`.
"""

_ABOVE = __package__.rpartition(".")[0]

MAIN = f"{__package__}.main"
CLASS_ARCHIVE = f"{_ABOVE}.spark.warm_up.class_archive"
PROJECTS = f"{_ABOVE}.projects"
