"""Whether a connector fulfils its contract: checks that the tests of any connector call."""
