#pragma once
#include <string>
#include <string_view>

// Texts of users (names of columns, classes, files) on pages that others read.

namespace cudp::page {

/// Returns the text as one line of valid UTF-8 that shows what it is: control characters, line
/// breaks, and characters that turn the direction of writing or have no width, are written as
/// "\u{202e}"; bytes that are not UTF-8 as "\x{ff}".
std::string one_line(std::string_view text);

/// Returns one_line(text) for HTML and SVG, in elements and in quoted attributes.
std::string html(std::string_view text);

/// Returns one_line(text) for Markdown: no character of it has a meaning there, nor in HTML.
std::string markdown(std::string_view text);

/// Returns one_line(text) as a double-quoted text of YAML.
std::string yaml(std::string_view text);

}  // namespace cudp::page
