# The targets of the library, in the build and where it is installed:
#   playfield::shared, playfield::static   one of the libraries, with the headers
#   playfield::playfield                   the shared one, or the static one if PLAYFIELD_STATIC is on

# What the static library needs of the system.
if(WIN32)
  set(playfield_system advapi32 bcrypt crypt32 kernel32 ntdll secur32 userenv ws2_32)
elseif(APPLE)
  set(playfield_system "-framework CoreFoundation" "-framework Security" m)
else()
  set(playfield_system pthread dl m)
endif()

# The paths of the shared library, of its import library (on Windows) and of the static library, each
# empty if there is none, and the folders of headers.
function(playfield_libraries shared import static headers)
  add_library(playfield_headers INTERFACE)
  target_include_directories(playfield_headers INTERFACE ${headers})
  target_compile_features(playfield_headers INTERFACE cxx_std_20)

  if(shared)
    add_library(playfield_shared SHARED IMPORTED GLOBAL)
    set_target_properties(playfield_shared PROPERTIES IMPORTED_LOCATION ${shared})
    if(import)
      set_target_properties(playfield_shared PROPERTIES IMPORTED_IMPLIB ${import})
    elseif(APPLE)
      set_target_properties(playfield_shared PROPERTIES IMPORTED_SONAME @rpath/libplayfield.0.dylib)
    else()
      set_target_properties(playfield_shared PROPERTIES IMPORTED_SONAME libplayfield.so.0)
    endif()
    target_link_libraries(playfield_shared INTERFACE playfield_headers)
    add_library(playfield::shared ALIAS playfield_shared)
  endif()

  if(static)
    add_library(playfield_static STATIC IMPORTED GLOBAL)
    set_target_properties(playfield_static PROPERTIES IMPORTED_LOCATION ${static})
    target_link_libraries(playfield_static INTERFACE playfield_headers ${playfield_system})
    add_library(playfield::static ALIAS playfield_static)
  endif()

  if(static AND (PLAYFIELD_STATIC OR NOT shared))
    add_library(playfield::playfield ALIAS playfield_static)
  else()
    add_library(playfield::playfield ALIAS playfield_shared)
  endif()
endfunction()
