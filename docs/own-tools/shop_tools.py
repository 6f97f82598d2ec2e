from typing import Annotated, Literal

from agentloom.api import BaseTool, tool

PRICES = {"tea": 4.0, "coffee": 7.5}


@tool("price", "Tell what an article costs.")
def price(
    article: Annotated[Literal["tea", "coffee"], "what to look up"],
    pieces: Annotated[int, "how many", {"minimum": 1}] = 1,
) -> float:
    return PRICES[article] * pieces


class Stamp(BaseTool):
    name = "stamp"
    description = "Put a mark under a text."

    async def execute(self, text: str, mark: str | None = None) -> str:
        return f"{text} [{mark or 'seen'}]"
