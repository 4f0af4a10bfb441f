graph [
  node [ id 0 label "A" Latitude 50.0 Longitude 8.0 ]
  node [ id 1 label "B" Latitude 51.0 Longitude 9.0 ]
  node [ id 2 label "C" Latitude 52.0 Longitude 8.5 ]
  edge [ source 0 target 1 LinkSpeedRaw 10000000000.0 ]
  edge [ source 1 target 2 LinkSpeedRaw 10000000000.0 ]
  edge [ source 2 target 0 ]
]
