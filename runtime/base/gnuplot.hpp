#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace cudp {

/// Returns the text as a single-quoted gnuplot string.
std::string gnuplot_text(const std::string& text);

/// Numbers of gnuplot line types in runtime/base/style.gp. 1 to kLineColours are colours for any
/// line; the following ones have the meaning that their names state.
inline constexpr int kLineColours = 7;
inline constexpr int kLineWithoutPrivacy = 8;
inline constexpr int kLineByChance = 9;

/// Size of a picture [pixels].
struct PictureSize {
  int width = 960;
  int height = 540;
};

/// Returns the first lines of every gnuplot script: the style (runtime/base/style.gp) for a PNG of
/// this size, and the title.
std::string gnuplot_header(const std::string& title, PictureSize size = {});

/// Pictures that gnuplot draws, each in a process of its own, while the program continues. A
/// picture appears at its path complete or not at all.
class Pictures {
 public:
  Pictures();
  ~Pictures();  ///< Ends the processes that still draw, and removes their pictures.
  Pictures(const Pictures&) = delete;
  Pictures& operator=(const Pictures&) = delete;

  /// Starts gnuplot, which draws a PNG by `script`; finish() moves it to the path `picture`. mode:
  /// permissions of the file. Throws Error if `picture` exists and is not a regular file, or with
  /// the system's reason if it cannot be written.
  void start(const std::string& script, const std::filesystem::path& picture, unsigned mode = 0644);
  /// Waits for all processes, and moves the pictures to their paths. Returns false if there is no
  /// gnuplot, or it did not draw one of them. Throws Error if one cannot be moved.
  bool finish();

 private:
  class Drawing;
  std::vector<std::unique_ptr<Drawing>> drawings_;
};

/// Draws one picture and waits for it. Arguments as for Pictures::start(), result and exceptions as
/// for Pictures::finish().
bool run_gnuplot(const std::string& script, const std::filesystem::path& picture,
                 unsigned mode = 0644);

}  // namespace cudp
