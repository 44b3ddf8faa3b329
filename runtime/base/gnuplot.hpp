#pragma once
#include <filesystem>
#include <string>

namespace cudp {

/// A text in gnuplot's single quotes.
std::string gnuplot_text(const std::string& text);

/// The beginning of most scripts: a PNG of 960 x 600 with light grid and grey axes.
std::string gnuplot_header(const std::string& title);

/// Lets gnuplot draw what the script says, a PNG, and puts it at `picture`, whole or not at all.
/// False where there is no gnuplot, or it drew nothing. Throws Error with the system's reason where
/// no file can be written there, or `picture` is there and is none. mode: as write_atomically has
/// it.
bool run_gnuplot(const std::string& script, const std::filesystem::path& picture,
                 unsigned mode = 0644);

}  // namespace cudp
