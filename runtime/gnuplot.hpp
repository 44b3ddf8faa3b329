#pragma once
#include <filesystem>
#include <string>

namespace cudp {

/// A text in gnuplot's single quotes.
std::string gnuplot_text(const std::string& text);

/// The beginning of every script: a PNG of 960 x 600 with light grid and grey axes, to `picture`.
std::string gnuplot_header(const std::string& title, const std::filesystem::path& picture);

/// Runs gnuplot. False where there is none, or it did not draw the picture.
bool run_gnuplot(const std::string& script, const std::filesystem::path& picture);

}  // namespace cudp
