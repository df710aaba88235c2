"""``websockets.extensions``: the one extension that there is, permessage-deflate."""
