import epsilometer


def test_every_public_name_exists_and_is_documented() -> None:
    for name in epsilometer.__all__:
        value = getattr(epsilometer, name)
        assert name == "__version__" or value.__doc__, name
    assert set(epsilometer.__all__) == set(dir(epsilometer))


def test_unknown_names_are_attribute_errors() -> None:
    assert not hasattr(epsilometer, "nothing")
