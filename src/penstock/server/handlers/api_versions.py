"""ApiVersions (18), versions 0-4. Which APIs and features this node serves.

Behaviour: answered to everybody, also before authentication. Produce is told from version 0 because librdkafka switches
compression off otherwise; versions 0-2 of it are refused all the same. A client that names itself badly is told so.
Notes: v3 flexible, software name, features. Clients below v4 choke on a feature whose lowest level is 0, so such
features are left out of what they are told. A version we do not know is answered by the connection in version 0.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from penstock.model.errors import INVALID_REQUEST
from penstock.protocol.messages.api_versions import ApiVersionsResponse

if TYPE_CHECKING:
    from penstock.protocol.messages.api_versions import ApiVersionsRequest
    from penstock.server.doors import Context

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_SOFTWARE_CHARACTERS_KEPT: Final = 128
"""Of each text, for as long as the connection stands; strangers say them too."""
_SOFTWARE_SINCE: Final = 3
_LEVEL_ZERO_SINCE: Final = 4


def handle(ctx: Context, request: ApiVersionsRequest) -> ApiVersionsResponse:
    if ctx.api_version >= _SOFTWARE_SINCE:
        name, version = request.client_software_name, request.client_software_version
        if not (_SOFTWARE.fullmatch(name) and _SOFTWARE.fullmatch(version)):
            return ApiVersionsResponse(error_code=INVALID_REQUEST.code)
        if ctx.connection is not None:
            ctx.connection.software = (name[:_SOFTWARE_CHARACTERS_KEPT], version[:_SOFTWARE_CHARACTERS_KEPT])
    epoch, finalized = ctx.node.features.finalized()
    return ApiVersionsResponse(
        api_keys=[
            ApiVersionsResponse.ApiVersion(api_key=key, min_version=lowest, max_version=highest)
            for key, lowest, highest in ctx.node.apis.advertised()
        ],
        supported_features=[
            ApiVersionsResponse.SupportedFeatureKey(name=name, min_version=lowest, max_version=highest)
            for name, (lowest, highest) in sorted(ctx.node.features.supported().items())
            if lowest > 0 or ctx.api_version >= _LEVEL_ZERO_SINCE
        ],
        finalized_features_epoch=epoch,
        finalized_features=[
            ApiVersionsResponse.FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            for name, level in sorted(finalized.items())
            if level > 0
        ],
    )
