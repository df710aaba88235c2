# An overlay port: `vcpkg install playfield --overlay-ports=PLAYFIELD/sdk/cpp/vcpkg`, where PLAYFIELD
# is a clone of the repository, of which this port builds the tree around it. Cargo must be there.
get_filename_component(workspace "${CURRENT_PORT_DIR}/../../../.." ABSOLUTE)

# A library in Rust has no variant for debugging that differs in its ABI. Programs of both kinds link
# this one.
set(VCPKG_BUILD_TYPE release)
set(VCPKG_POLICY_MISMATCHED_NUMBER_OF_BINARIES enabled)

if(VCPKG_LIBRARY_LINKAGE STREQUAL "dynamic")
  set(kind shared)
else()
  set(kind static)
endif()
vcpkg_cmake_configure(
  SOURCE_PATH "${workspace}/sdk/cpp"
  OPTIONS
    -DPLAYFIELD_EXAMPLES=OFF
    -DPLAYFIELD_PROFILE=release
    -DPLAYFIELD_INSTALL=${kind}
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/playfield)
vcpkg_fixup_pkgconfig()
vcpkg_install_copyright(FILE_LIST "${workspace}/LICENSE-MIT" "${workspace}/LICENSE-APACHE")
