# An overlay port: `vcpkg install playfield --overlay-ports=PLAYFIELD/sdk/cpp/vcpkg`, where PLAYFIELD
# is a clone of the repository, of which this port builds the tree around it. Cargo must be there.
get_filename_component(workspace "${CURRENT_PORT_DIR}/../../../.." ABSOLUTE)

vcpkg_cmake_configure(
  SOURCE_PATH "${workspace}/sdk/cpp"
  OPTIONS
    -DPLAYFIELD_EXAMPLES=OFF
    -DPLAYFIELD_PROFILE=release
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/playfield)
vcpkg_fixup_pkgconfig()

# The headers are the same for both builds. A program links the kind of library that its triplet names.
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include")
vcpkg_install_copyright(FILE_LIST "${workspace}/LICENSE-MIT" "${workspace}/LICENSE-APACHE")
