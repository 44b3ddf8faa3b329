#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace cudp {

/// Returns the text as a single-quoted gnuplot string.
std::string gnuplot_text(const std::string& text);

/// Numbers of gnuplot's line types, as runtime/base/style.gp defines them. Types 1 to kLineColours
/// are for any curves, in different colours; each constant after that is a type for the purpose in
/// its name.
inline constexpr int kLineColours = 7;
inline constexpr int kLineWithoutPrivacy = 8;
inline constexpr int kLineByChance = 9;

/// Size of a picture [pixels].
struct PictureSize {
  int width = 960;
  int height = 540;
};

/// Returns the first lines of a gnuplot script: they set the style (runtime/base/style.gp) for a
/// PNG of this size, and the picture's title.
std::string gnuplot_header(const std::string& title, PictureSize size = {});

/// Pictures that gnuplot draws, each in a process of its own, while the program continues. A
/// picture appears at its path complete or not at all.
class Pictures {
 public:
  Pictures();
  ~Pictures();  ///< Ends the gnuplot processes that still draw, and removes their pictures.
  Pictures(const Pictures&) = delete;
  Pictures& operator=(const Pictures&) = delete;

  /// Starts gnuplot, which draws a PNG file as `script` describes. finish() moves the file to the
  /// path `picture`. mode: permissions of the file. Throws Error if `picture` exists and is not a
  /// regular file, or with the system's reason if it cannot be written.
  void start(const std::string& script, const std::filesystem::path& picture, unsigned mode = 0644);
  /// Waits until all pictures are drawn, and moves them to their paths. Returns false if there is
  /// no gnuplot, or it failed to draw one of them. Throws Error if a picture cannot be moved.
  bool finish();

 private:
  class Drawing;
  std::vector<std::unique_ptr<Drawing>> drawings_;
};

/// Draws one picture with gnuplot, as `script` describes, and waits for it. picture: path of the
/// PNG file. mode: permissions of the file. Returns false if there is no gnuplot, or it failed to
/// draw. Throws Error if `picture` exists and is not a regular file, or cannot be written.
bool run_gnuplot(const std::string& script, const std::filesystem::path& picture,
                 unsigned mode = 0644);

}  // namespace cudp
