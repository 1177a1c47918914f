"""Names of Medusa's own modules that are run as programs or contain files to copy.

They are derived from the name of this package, because an installed Medusa is a subpackage of
`medusa_streams`.
"""

_PARENT = __package__.rpartition(".")[0]

MAIN = f"{__package__}.main"
CLASS_ARCHIVE = f"{_PARENT}.spark.warm_up.class_archive"
PROJECTS = f"{_PARENT}.projects"
