"""The widget that shows laid-out pieces: selecting, copying, links, reading aloud."""
