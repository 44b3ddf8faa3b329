#pragma once
#include <string>
#include <string_view>

// Texts of users (names of columns, classes, files) on pages that others read.

namespace cudp::page {

/// Returns the text as one line of valid UTF-8 that cannot mislead a reader: control characters,
/// line breaks, and characters that change the direction of writing or have no width are written
/// like "\u{202e}", bytes that are not UTF-8 like "\x{ff}".
std::string one_line(std::string_view text);

/// Returns one_line(text) for HTML and SVG, in elements and in quoted attributes.
std::string html(std::string_view text);

/// Returns one_line(text) escaped for Markdown, so that no character is interpreted there or as
/// HTML.
std::string markdown(std::string_view text);

/// Returns one_line(text) as a double-quoted text of YAML.
std::string yaml(std::string_view text);

}  // namespace cudp::page
