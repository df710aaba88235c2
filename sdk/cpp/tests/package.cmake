# Installs the library, and builds programs that find it: by find_package, shared and static, and by
# pkg-config if that is there, in C++ and in C.

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGV} failed:\n${out}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/installed)

# The build keeps debug information, and what is installed has none.
file(GLOB libraries ${BUILD}/lib/libplayfield*)
foreach(built IN LISTS libraries)
  get_filename_component(name ${built} NAME)
  file(GLOB_RECURSE installed ${WORK}/installed/${name})
  file(SIZE ${built} built_bytes)
  file(SIZE ${installed} installed_bytes)
  if(NOT IS_SYMLINK ${built} AND NOT installed_bytes LESS built_bytes)
    message(FATAL_ERROR "${installed} is not stripped: ${installed_bytes} bytes, as ${built}")
  endif()
endforeach()

foreach(static OFF ON)
  run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/${static} -G ${GENERATOR}
    -DCMAKE_PREFIX_PATH=${WORK}/installed -DPLAYFIELD_STATIC=${static})
  run(${CMAKE_COMMAND} --build ${WORK}/${static})
  run(${WORK}/${static}/program)
endforeach()

find_program(PKG_CONFIG pkg-config)
find_program(CXX NAMES c++ g++ clang++)
if(PKG_CONFIG AND CXX)
  file(GLOB_RECURSE pc ${WORK}/installed/playfield.pc)
  get_filename_component(folder ${pc} DIRECTORY)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${folder}
    ${PKG_CONFIG} --cflags --libs playfield
    OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags)
  run(${CXX} -std=c++20 ${SOURCE}/main.cpp ${flags} -o ${WORK}/by-pkg-config)
  get_filename_component(libraries ${folder} DIRECTORY)
  run(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${libraries} ${WORK}/by-pkg-config)
  find_program(CC NAMES cc gcc clang)
  if(CC)
    run(${CC} -std=c11 -Wall -Wextra -Werror ${SOURCE}/main.c ${flags} -o ${WORK}/c-by-pkg-config)
    run(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${libraries} ${WORK}/c-by-pkg-config)
  endif()
endif()
