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
        place = f"{self.where}: " if self.where else ""
        advice = f"\n  {self.hint}" if self.hint else ""
        return f"{place}{self.problem}{advice}"
