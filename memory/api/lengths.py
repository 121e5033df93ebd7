"""Bodies say how long they are: one that comes in chunks would be taken for an empty one."""

from collections.abc import Callable

from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase

from memory.api.problems import API_PREFIX, CONTENT_TYPE, problem

_NEEDED = "The body came in chunks, which is not read here: send it with a Content-Length."


def require_length(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Refuse calls of the API with 411 whose body has no length (a middleware)."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        has_length = "HTTP_TRANSFER_ENCODING" not in request.META or request.META.get("CONTENT_LENGTH")
        if has_length or not request.path.startswith(API_PREFIX):
            return get_response(request)
        return JsonResponse(problem(status=411, detail=_NEEDED), status=411, content_type=CONTENT_TYPE)

    return answer
