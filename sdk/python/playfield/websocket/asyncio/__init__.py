"""The module names of ``websockets``, as aliases."""
