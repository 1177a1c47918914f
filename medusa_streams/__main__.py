"""The `medusa` command, also as `python -m medusa_streams`."""

from pipeline.cli.main import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
