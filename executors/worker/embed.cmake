# cmake -DOUT=file.cpp -DSOURCES=a.py,b.py -P embed.cmake: the modules as byte arrays.
string(REPLACE "," ";" SOURCES "${SOURCES}")
set(arrays "")
set(table "")
foreach(source ${SOURCES})
  get_filename_component(name "${source}" NAME_WE)
  file(READ "${source}" hex HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${hex}")
  string(APPEND arrays "constexpr char ${name}[] = {${bytes}0};\n")
  string(APPEND table "  {\"${name}\", ${name}},\n")
endforeach()
file(WRITE "${OUT}" "#include \"executors/worker_source.hpp\"

namespace troupe {
namespace {
${arrays}}  // namespace

const worker_module worker_modules[worker_module_count] = {
${table}};

}  // namespace troupe
")
