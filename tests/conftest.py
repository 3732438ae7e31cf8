"""What holds for all tests: a property is true or false, however busy the machine is."""

from hypothesis import settings

settings.register_profile("book", deadline=None)
settings.load_profile("book")
