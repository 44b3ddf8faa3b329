# What `cmake --install` brings, and CPack packs (scripts/package.sh): the programs, in which presets,
# schemas and models are; manual page and completion, which the program prints of itself; Slurm
# scripts; the licences of cudp and of all that is linked in.
include(GNUInstallDirs)
install(TARGETS cudp RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

set(completion ${CMAKE_CURRENT_BINARY_DIR}/completion)
file(MAKE_DIRECTORY ${completion})
set(forms bash zsh fish man)
set(printed "")
foreach(form ${forms})
  list(APPEND printed COMMAND cudp completion ${form} > ${completion}/${form})
endforeach()
if(NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR)
  add_custom_command(TARGET cudp POST_BUILD ${printed} VERBATIM)
endif()
install(FILES ${completion}/bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME cudp OPTIONAL)
install(FILES ${completion}/zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions RENAME _cudp OPTIONAL)
install(FILES ${completion}/fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME cudp.fish OPTIONAL)
install(FILES ${completion}/man DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 RENAME cudp.1 OPTIONAL)
install(PROGRAMS scripts/slurm/train.sbatch scripts/slurm/array.sbatch scripts/slurm/sweep.sbatch
  DESTINATION ${CMAKE_INSTALL_DATADIR}/cudp/slurm)

# The licence files that Debian's packages bring. Another distribution's packager names them.
set(CUDP_LICENCES /usr/share/doc CACHE PATH "Folder with PACKAGE/copyright of what is linked in")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
foreach(package libsodium-dev libutf8proc-dev zlib1g-dev liblzma-dev libfmt-dev libspdlog-dev libtomlplusplus-dev
    nlohmann-json3-dev libcli11-dev libeigen3-dev libkissfft-dev libstdc++6)
  if(EXISTS ${CUDP_LICENCES}/${package}/copyright)
    install(FILES ${CUDP_LICENCES}/${package}/copyright
      DESTINATION ${CMAKE_INSTALL_DOCDIR}/licences RENAME ${package}.txt)
  else()
    message(STATUS "Licences: ${CUDP_LICENCES}/${package}/copyright was not found; it will not be installed")
  endif()
endforeach()
install(FILES scripts/licences/README.txt scripts/licences/Boost.txt scripts/licences/MPL-2.0.txt
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/licences)

string(TOLOWER ${CMAKE_SYSTEM_NAME} system)
set(CPACK_PACKAGE_NAME cudp)
set(CPACK_PACKAGE_VENDOR cudp)
set(CPACK_PACKAGE_CONTACT "cudp <cudp@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Trainer for machine-learning models with differential privacy")
set(CPACK_PACKAGE_FILE_NAME cudp-${PROJECT_VERSION}-${system}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS gnuplot-nox)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # libc6, of the version that the program needs
include(CPack)
