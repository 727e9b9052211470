"""What a person did that we cannot carry out, in words they can act on. Pure."""


class UserError(Exception):
    """A problem of the caller's making: printed by `main` alone, as one paragraph, with exit status 125."""

    def __init__(self, problem: str, *, where: str = "", hint: str = "", code: int = 125) -> None:
        super().__init__(problem)
        self.problem = problem
        self.where = where
        self.hint = hint
        self.code = code

    def __str__(self) -> str:
        place = f"{plain(self.where)}: " if self.where else ""
        advice = f"\n  {plain(self.hint)}" if self.hint else ""
        return f"{place}{plain(self.problem)}{advice}"


def plain(text: str, most: int = 1000) -> str:
    """One line, and nothing that a terminal would act on: parts of it come from files that an agent can write."""
    short = text if len(text) <= most else f"{text[: most // 2]}…{text[-most // 2 :]}"
    return "".join([char if char.isprintable() else ascii(char)[1:-1] for char in short])
