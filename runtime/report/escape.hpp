#pragma once
#include <string>
#include <string_view>

// Escaping of texts that users chose (names of columns, classes, files), for pages that others
// read.

namespace cudp::page {

/// Returns the text as one line of valid UTF-8 that cannot mislead a reader: control characters,
/// line breaks, and characters that change the direction of writing or have no width are written
/// like "\u{202e}", bytes that are not UTF-8 like "\x{ff}".
std::string one_line(std::string_view text);

/// Makes a text of unknown origin a harmless single line (one_line()) and escapes it for HTML and
/// SVG, for use in elements and in quoted attributes.
std::string html(std::string_view text);

/// Makes a text of unknown origin a harmless single line (one_line()) and escapes it for Markdown,
/// so that no character of it is interpreted as Markdown or HTML.
std::string markdown(std::string_view text);

/// Makes a text of unknown origin a harmless single line (one_line()) and returns it as a
/// double-quoted YAML string.
std::string yaml(std::string_view text);

}  // namespace cudp::page
