#pragma once
// Files that are no tables, or not as their schema says, named so that their owner knows what to
// do.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cudp {

/// Says what a file is, by its first bytes, that cannot be a table of text, and what to do then;
/// empty: it may be a table.
std::string what_is_it(std::span<const std::uint8_t> head);

/// What to do with a file that is not UTF-8, as encoding_fault ends with it.
extern const std::string_view kIconvAdvice;

/// Why a text is not UTF-8; empty: it is.
std::string encoding_fault(std::string_view text);

/// The delimiter that a line seems to have where it has none of `delimiter`, "; the line has 3
/// ';'"; empty: none that can be named.
std::string other_delimiter(std::string_view line, char delimiter);

}  // namespace cudp
