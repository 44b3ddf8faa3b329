# embed_text(TARGET NAME FILE...): adds to TARGET a function
#   std::span<const cudp::EmbeddedText> cudp::NAME()
# that returns the files' stems and contents, declared in "NAME.hpp". Files are limited to 60 KB
# (a compiler's limit on one literal).
function(embed_text target name)
  set(entries "")
  foreach(file ${ARGN})
    get_filename_component(stem ${file} NAME_WE)
    file(READ ${file} text)
    string(APPEND entries "    {\"${stem}\", R\"~~~~(${text})~~~~\"},\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  endforeach()
  set(dir ${CMAKE_CURRENT_BINARY_DIR}/embedded)
  file(CONFIGURE OUTPUT ${dir}/${name}.hpp @ONLY CONTENT "#pragma once
#include <span>
#include <string_view>

#ifndef CUDP_EMBEDDED_TEXT
#define CUDP_EMBEDDED_TEXT
namespace cudp {
struct EmbeddedText {
  std::string_view name;
  std::string_view text;
};
}  // namespace cudp
#endif

namespace cudp {
std::span<const EmbeddedText> @name@();
}
")
  file(CONFIGURE OUTPUT ${dir}/${name}.cpp @ONLY CONTENT "#include \"@name@.hpp\"

namespace cudp {
std::span<const EmbeddedText> @name@() {
  static constexpr EmbeddedText kTexts[] = {
@entries@  };
  return kTexts;
}
}  // namespace cudp
")
  target_sources(${target} PRIVATE ${dir}/${name}.cpp)
  target_include_directories(${target} PRIVATE ${dir})
endfunction()
