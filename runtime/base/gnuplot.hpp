#pragma once
#include <filesystem>
#include <string>

namespace cudp {

/// Returns the text as a single-quoted string of gnuplot.
std::string gnuplot_text(const std::string& text);

/// Returns the first lines of most scripts: a PNG of 960 x 600 pixels with a light grid and grey
/// axes.
std::string gnuplot_header(const std::string& title);

/// Runs gnuplot on a script that draws a PNG, and writes the picture to `picture`, complete or not
/// at all. Returns false if there is no gnuplot, or it drew nothing. mode: permissions, as for
/// write_atomically. Throws Error if `picture` exists and is not a regular file, or with the
/// system's reason if it cannot be written.
bool run_gnuplot(const std::string& script, const std::filesystem::path& picture,
                 unsigned mode = 0644);

}  // namespace cudp
