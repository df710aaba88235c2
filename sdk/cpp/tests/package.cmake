# Installs the library, and builds a program that finds it: by find_package, shared and static, and
# by pkg-config if that is there.

function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGV} failed:\n${out}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/installed)
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
  # The prefix is where it is found, not where it would have been installed.
  execute_process(COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${folder}
    ${PKG_CONFIG} --define-variable=prefix=${WORK}/installed --cflags --libs playfield
    OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(flags)
  run(${CXX} -std=c++20 ${SOURCE}/main.cpp ${flags} -o ${WORK}/by-pkg-config)
  get_filename_component(libraries ${folder} DIRECTORY)
  run(${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${libraries} ${WORK}/by-pkg-config)
endif()

# The client of docs/cpp.md, as it is there.
file(READ ${SOURCE}/../../../../docs/cpp.md guide)
foreach(part IN ITEMS "cmake;CMakeLists.txt" "cpp;main.cpp")
  list(GET part 0 language)
  list(GET part 1 name)
  string(FIND "${guide}" "\n```${language}\n" begin)
  string(LENGTH "\n```${language}\n" skip)
  math(EXPR begin "${begin} + ${skip}")
  string(SUBSTRING "${guide}" ${begin} -1 rest)
  string(FIND "${rest}" "\n```" end)
  string(SUBSTRING "${rest}" 0 ${end} text)
  file(WRITE ${WORK}/duel/${name} "${text}\n")
endforeach()
run(${CMAKE_COMMAND} -S ${WORK}/duel -B ${WORK}/duel/build -G ${GENERATOR}
  -DCMAKE_PREFIX_PATH=${WORK}/installed)
run(${CMAKE_COMMAND} --build ${WORK}/duel/build)
