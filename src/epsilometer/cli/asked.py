"""What a spec file of a study and a command's options ask for together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from epsilometer.cli.groups import as_user_wrote, put, said
from epsilometer.cli.progress import downloads
from epsilometer.errors import InvalidInput

if TYPE_CHECKING:
    from epsilometer.data import Progress

Asked_co = TypeVar("Asked_co", covariant=True)


class StudySpec(Protocol[Asked_co]):
    """A spec (a pydantic model) that knows what is to be done."""

    def study(self, data_dir: Path | None = None, progress: Progress | None = None) -> Asked_co: ...


def asked(
    kind: type[StudySpec[Asked_co]], spec: Path | None, options: Any, data_dir: Path | None, quiet: bool
) -> Asked_co:
    """What is to be done; options win over the spec, and errors name what the user wrote."""
    from epsilometer.auditing.spec_text import read_toml, validated

    model: Any = kind
    values = {} if spec is None else validated(model, read_toml(spec)).model_dump(exclude_unset=True)
    names = put(values, said(options))
    if data_dir is not None:
        names["data.directory"] = "--data-dir"
    try:
        found: Asked_co = validated(model, values).study(data_dir, downloads(quiet))
    except InvalidInput as error:
        raise as_user_wrote(error, names) from None
    return found
