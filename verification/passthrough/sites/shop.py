"""A Django site that sells things: below a mount, behind locales and a front controller, as a path
in a parameter. gunicorn serves `application`, daphne `asgi_application`."""

from django.conf import settings

settings.configure(ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, SECRET_KEY="none", MIDDLEWARE=[])

from django.core.asgi import get_asgi_application  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.http import Http404, HttpResponse, JsonResponse  # noqa: E402
from django.urls import Resolver404, path, re_path, resolve  # noqa: E402


def sold(request, **_values):
    return HttpResponse("GOODS")


def staff(request, **_values):
    return HttpResponse("STAFF")


def image(request):
    """Answers with another page of the site, as image optimisers and front controllers do."""
    target = request.GET.get("url") or request.GET.get("path") or request.GET.get("rest_route") or ""
    try:
        found = resolve("/" + target.lstrip("/"))
    except Resolver404:
        raise Http404
    return found.func(request, *found.args, **found.kwargs)


def seen(request):
    """The fields and the paths that the application sees."""
    meta = {name: str(value) for name, value in request.META.items() if name.isupper()}
    return JsonResponse({"path": request.path, "path_info": request.path_info, "meta": meta})


urlpatterns = [
    path("seen", seen),
    path("x/seen", seen),
    path("image", image),
    re_path(r"^(?:(?:en|de)/|index\.php/|v1/)?prices", sold),
    re_path(r"^(?:(?:en|de)/|index\.php/|v1/)?reports/(?P<city>[^/]+)/full", sold),
    re_path(r"^admin/users", staff),
    path("about", lambda request: HttpResponse("ABOUT")),
]

application = get_wsgi_application()
asgi_application = get_asgi_application()
