"""Made-up traffic, as it might come from cars, sensors, an exchange, a network or a web site."""
