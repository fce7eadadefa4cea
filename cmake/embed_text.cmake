# cmake -DIN=file -DOUT=file.cpp -DNAME=variable -P embed_text.cmake
# Writes a C++ file that defines troupe::NAME as the text of IN.
file(READ "${IN}" text)
string(LENGTH "${text}" size)
if(size GREATER 60000)
  message(FATAL_ERROR "${IN} is longer than a string literal may be")
endif()
file(WRITE "${OUT}" "#include <string_view>
namespace troupe {
extern const std::string_view ${NAME};
const std::string_view ${NAME} = R\"_embedded_(${text})_embedded_\";
}  // namespace troupe
")
